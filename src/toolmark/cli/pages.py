"""The page that `run` and `demo` write beside their report."""

from __future__ import annotations

from pathlib import Path

from toolmark.config import RunConfig
from toolmark.core.report import Report
from toolmark.reports.html import write_run_page
from toolmark.running.evaluate import Evaluator
from toolmark.running.offers import open_offers
from toolmark.store.lines import read_results


def page_path(config: RunConfig) -> Path | None:
    """None: nobody wants one, or the report goes somewhere that has no place beside it."""
    if not config.html or config.report is None:
        return None
    report = Path(config.report)
    path = report.with_suffix(".html")
    is_elsewhere = report.exists() and not report.is_file()
    return None if is_elsewhere or path == report else path


def write_page_of_run(config: RunConfig, report: Report) -> Path | None:
    """Where it was written. The results of an unfinished run are in its journal: until they are a
    file, the page shows none."""
    path = page_path(config)
    if path is None:
        return None
    out = Path(str(config.out))
    has_samples = report.complete and out.is_file()
    offers = open_offers(config.registry, config.allowlist)
    write_run_page(
        path,
        report,
        lambda: read_results(out) if has_samples else iter(()),
        name=str(out),
        cross_score=Evaluator(config).cross_score(offers.registry) if has_samples else None,
    )
    return path
