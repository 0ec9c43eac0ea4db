"""A run that was interrupted goes on; one of another setup begins anew."""

from lad_kept import Kept


def test_answers_are_found_again_by_the_same_setup(tmp_path):
    path = tmp_path / "new" / "run.part"
    kept = Kept(path, {"columns": (3, 4)})
    kept.put("first", [1.5, {"a": float("inf")}])
    kept.put("second", "b")
    assert Kept(path, {"columns": (3, 4)}).known == {"first": [1.5, {"a": float("inf")}], "second": "b"}


def test_another_setup_begins_anew(tmp_path):
    path = tmp_path / "run.part"
    Kept(path, 1).put("first", 2)
    assert Kept(path, 2).known == {}
    assert Kept(path, 1).known == {}


def test_a_line_that_was_cut_short_is_left_out(tmp_path):
    path = tmp_path / "run.part"
    kept = Kept(path, 1)
    kept.put("first", 2)
    kept.put("second", "long enough to be cut")
    path.write_text(path.read_text()[:-9])
    again = Kept(path, 1)
    assert again.known == {"first": 2}
    again.put("second", 3)
    assert Kept(path, 1).known == {"first": 2, "second": 3}


def test_a_finished_run_leaves_nothing(tmp_path):
    path = tmp_path / "run.part"
    Kept(path, 1).done()
    assert not path.exists()
