"""Keeps models in CTranslate2's format beside the models that they were made from."""
import pathlib
import shutil


def kept(folder, make):
    """Returns the folder of the model that make() returned as a specification of CTranslate2, which is saved only once."""
    target = pathlib.Path(folder) / "ctranslate2"
    if target.exists():
        return str(target)
    spec = make()
    spec.validate()
    spec.optimize()
    part = target.with_name("part-ctranslate2")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    spec.save(str(part))
    part.rename(target)
    return str(target)
