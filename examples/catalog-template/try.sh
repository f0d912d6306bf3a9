#!/bin/sh
# From the template to a catalog in use. Run it in the root of a checkout: sh examples/catalog-template/try.sh
set -eu

# A package of your own
cp -r examples/catalog-template my-catalog
cd my-catalog
mv folder_catalog my_catalog
for file in pyproject.toml my_catalog/*.py; do
    sed 's/folder_catalog/my_catalog/g' "$file" > renamed && mv renamed "$file"
done

# Installed, it is a platform called folder
pip install --no-deps --no-build-isolation .

# Proven
pytest -q test_catalog.py

# Used
cat > lumos.yaml <<END
platform_config:
  folder:
    path: ./catalog
END
lumos import ../examples/shop/january.json
lumos sync --all --output folder
lumos export --platform folder --output all.json
lumos diff --source ../examples/shop/january.json --target all.json
lumos search orders --platform folder
