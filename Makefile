PYTHON ?= python3
PYTHONS ?= 3.11 3.12 3.13
BIN := .venv/bin
FOUND_BROWSER := { command -v chromium || command -v chromium-browser || command -v google-chrome; } >/dev/null
unexport PYTHONDONTWRITEBYTECODE # every command would compile all that it imports anew

# $(call install,PYTHON,FOLDER,EXTRA): uv takes a fifth of pip's time; where there is no uv, or uv does not know
# the registry that pip is set up for, pip installs, without compiling what Python compiles when it is first imported
install = $(1) -m venv $(2) && { \
  $(2)/bin/pip install --quiet --constraint constraints.txt uv && \
  $(2)/bin/uv pip install --quiet --python $(2)/bin/python --constraint constraints.txt --editable '.[$(3)]' || \
  $(2)/bin/pip install --quiet --no-compile --constraint constraints.txt --editable '.[$(3)]'; }

.venv/extras: pyproject.toml constraints.txt # every extra: what a user may install
	$(call install,$(PYTHON),.venv,all)
	touch $@

.venv/made: pyproject.toml constraints.txt   # and what developers need
	$(call install,$(PYTHON),.venv,dev)
	touch .venv/extras $@

run: .venv/extras           ## the paper's experiments; leaves out/report.html
	$(BIN)/sidestep reproduce all --out out

serve: .venv/extras         ## the service with a simulated study, on this machine
	$(BIN)/sidestep serve --demo

quick-start: .venv/extras   ## the example of the README
	$(BIN)/python benchmarks/quick_start.py

browser:                    ## a Chromium for the tests of the pages, where one may be installed
	@$(FOUND_BROWSER) || \
	  { [ "$$(id -u)" = 0 ] && apt-get update -qq && apt-get install -qq -y chromium; } >/dev/null 2>&1 || true

test: .venv/made browser    ## everything but slow statistical claims
	$(BIN)/pytest -n 2 --dist worksteal
	@$(FOUND_BROWSER) || \
	  echo 'No Chromium was found and none could be installed: the tests of the pages were skipped.'

test-pythons:               ## the same on Python 3.11 to 3.13, each in a .venv-X of its own, where the interpreter is there
	@for version in $(PYTHONS); do \
	  python$$version -c pass 2>/dev/null || { echo "python$$version is not here: skipped"; continue; }; \
	  $(call install,python$$version,.venv-$$version,dev) && \
	  .venv-$$version/bin/pytest -p no:cacheprovider -n 2 --dist worksteal || exit 1; \
	done

static: .venv/made          ## format, lint, types, import contract
	$(BIN)/ruff format --check --quiet . && $(BIN)/ruff check --quiet . && $(BIN)/mypy && $(BIN)/lint-imports --no-logo

check: static               ## before every push: the same, and the fast tests
	$(BIN)/pytest --quiet -m 'not slow and not full' -n 2

test-slow: .venv/made browser ## statistical claims over many runs, long counts, notebooks
	$(BIN)/pytest -n 2 -m slow

bench: .venv/made           ## speed: the machine's limits, numpy, every policy; leaves bench/bench.md
	$(BIN)/python -m benchmarks.speed --out bench

bench-check: .venv/made     ## has anything become slower? ratios against numpy, in a minute
	$(BIN)/python -m benchmarks.check

readme-figures: run         ## the two figures of the README, from the traces of `make run`
	cp out/figures/synthetic-synthetic-regret.png docs/figures/synthetic.png
	cp out/figures/synthetic-synthetic-r0.1-regret.png docs/figures/synthetic-r0.1.png

docs: .venv/made            ## the site, its notebooks executed; leaves docs/_build/html, which needs no network
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going docs docs/_build/html
	@echo docs/_build/html/index.html

.PHONY: run serve quick-start readme-figures browser test test-pythons static check test-slow bench bench-check docs
