# The configuration of Sphinx for the site, of which write_site.py prepares the pages.
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[3]

project = "fovea"
version = release = re.search(r"project\(fovea.*?VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"), re.DOTALL)[1]
extensions = ["myst_parser"]
myst_heading_anchors = 4
smartquotes = False
highlight_language = "text"
html_theme = "furo"
html_title = f"fovea {version}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "xcode"
