PYTHON ?= python3
BIN := .venv/bin

.venv/made: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

run: .venv/made             ## the paper's experiments; leaves out/report.html
	$(BIN)/sidestep reproduce all --out out

quick-start: .venv/made     ## the example of the README
	$(BIN)/python benchmarks/quick_start.py

test: .venv/made            ## everything but slow statistical claims
	$(BIN)/pytest -n 2 --dist worksteal

check: .venv/made           ## before every push: format, lint, types, import contract, fast tests
	$(BIN)/ruff format --check --quiet . && $(BIN)/ruff check --quiet . && $(BIN)/mypy && $(BIN)/lint-imports --no-logo
	$(BIN)/pytest --quiet -m 'not slow and not full' -n 2

test-slow: .venv/made       ## statistical claims over many runs
	$(BIN)/pytest -n 2 -m slow

bench: .venv/made           ## speed: the machine's limits, numpy, every policy; leaves bench/bench.md
	$(BIN)/python -m benchmarks.speed --out bench

bench-check: .venv/made     ## has anything become slower? ratios against numpy, in a minute
	$(BIN)/python -m benchmarks.check

readme-figures: run         ## the two figures of the README, from the traces of `make run`
	cp out/figures/synthetic-synthetic-regret.png docs/figures/synthetic.png
	cp out/figures/synthetic-synthetic-r0.1-regret.png docs/figures/synthetic-r0.1.png

docs: .venv/made            ## the pages are plain Markdown; this checks that their links and names exist
	$(BIN)/pytest --quiet tests/test_docs.py

.PHONY: run quick-start readme-figures test check test-slow bench bench-check docs
