"""How the documentation is built; `make docs` treats every warning as an error."""

from lumos import __version__

project = "Lumos"
author = "The Lumos authors"
release = __version__
version = __version__

extensions = ["myst_parser"]
exclude_patterns = ["_build"]
nitpicky = True
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = "Lumos"
html_copy_source = False
html_show_sphinx = False
