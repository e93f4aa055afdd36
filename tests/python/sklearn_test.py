"""scikit-learn: clone, pickle, Pipeline, GridSearchCV; data frames and tables."""

import pickle
import unittest

import numpy as np
from support import GOLDENS, TestCase

import fovea

TEXTS = [f"{'good' if i % 2 else 'bad'} thing {i}" for i in range(60)]
LABELS = [i % 2 for i in range(60)]


def sklearn():
    try:
        import sklearn as found
    except ImportError:
        raise unittest.SkipTest("scikit-learn is not installed") from None
    return found


class Sklearn(TestCase):
    def setUp(self):
        sklearn()

    def test_an_encoder_in_a_pipeline(self):
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline

        from fovea.sklearn import TextEncoder

        pipeline = make_pipeline(TextEncoder(str(GOLDENS / "sentence_model")), LogisticRegression())
        pipeline.fit(TEXTS, LABELS)
        again = pickle.loads(pickle.dumps(pipeline))
        np.testing.assert_array_equal(again.predict(TEXTS), pipeline.predict(TEXTS))

    def test_a_classifier_is_trained_cloned_and_pickled(self):
        from sklearn.base import clone

        from fovea.sklearn import TextClassifier

        classifier = TextClassifier(steps=150, options={"tokenizer": "char"})
        self.assertEqual(clone(classifier).get_params()["steps"], 150)
        classifier.fit(TEXTS, LABELS)
        self.assertGreater(classifier.score(TEXTS, LABELS), 0.9)
        np.testing.assert_allclose(classifier.predict_proba(TEXTS).sum(1), 1, atol=1e-5)
        again = pickle.loads(pickle.dumps(classifier))
        np.testing.assert_array_equal(again.predict_proba(TEXTS), classifier.predict_proba(TEXTS))

    def test_a_search_over_options(self):
        from sklearn.model_selection import GridSearchCV

        from fovea.sklearn import TextClassifier

        search = GridSearchCV(TextClassifier(options={"tokenizer": "char"}), {"steps": [2, 40]}, cv=2)
        search.fit(np.array(TEXTS, dtype=object), np.array(LABELS))
        self.assertEqual(search.best_params_["steps"], 40)


class Tables(TestCase):
    def run_on(self, data):
        return fovea.train(labels=data, out=self.folder() / "run", preset="tiny", steps=3, tokenizer="char")

    def test_data_frames_and_tables(self):
        weights = []
        rows = [{"text": text, "label": str(label)} for text, label in zip(TEXTS, LABELS)]
        sources = [rows]
        try:
            import pandas

            sources.append(pandas.DataFrame(rows))
        except ImportError:
            pass
        try:
            import pyarrow

            sources.append(pyarrow.Table.from_pylist(rows))
        except ImportError:
            pass
        if len(sources) == 1:
            self.skipTest("neither pandas nor pyarrow is installed")
        for source in sources:
            run = self.run_on(source)
            with open(run.out + "/model.safetensors", "rb") as file:
                weights.append(file.read())
        self.assertTrue(all(other == weights[0] for other in weights))


if __name__ == "__main__":
    unittest.main()
