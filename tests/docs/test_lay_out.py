"""Pages of the site: links to folders lead to their README.md, others stay."""

from tests.docs.lay_out import ROOT, lay_out, whole


def test_links_to_folders_lead_to_their_readme() -> None:
    text = "[a](experiments/020_scoreboard), [b](docs#ask), [c](docs/spaces.md), [d](https://x.org/docs), [e](spaces)"
    text += ", [f](docs/a.ipynb)"
    assert whole(text, ROOT) == (
        "[a](experiments/020_scoreboard/README.md), [b](docs/README.md#ask), [c](docs/spaces.md), "
        "[d](https://x.org/docs), [e](spaces), [f](docs/a.md)"
    )


def test_pages_lie_as_in_the_project(tmp_path) -> None:
    lay_out(tmp_path)
    assert (tmp_path / "README.md").is_file() and (tmp_path / "docs" / "spaces.md").is_file()
    assert (tmp_path / "dse" / "data" / "prices" / "hourly.csv").is_file()
