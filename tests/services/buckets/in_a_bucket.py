"""The tests of studies with every store that they make in a folder of theirs moved into a bucket: a plugin for pytest.

Tests that make no folder have no store to move, and are left out; so are those of which the list says why.
"""

from __future__ import annotations

import pytest

__all__ = ["NOT"]

_FOLDER = "looks at, or changes, files of the store"
_FORK = "a forked process opens its own store where it is a bucket, and is told so (tests/buckets)"
_LOGS = "looks for logs in the store; a bucket's are on this machine (tests/buckets)"
_RARE = "a bucket is shown curves, and asked for rescues, twice a minute only"
#: test -> why it says nothing about a bucket
NOT: dict[str, str] = {
    "test_a_beat_that_goes_wrong_does_not_end_the_others": _FOLDER,
    "test_a_damaged_file_is_told_at_once": _FOLDER,
    "test_a_killed_holder_holds_nothing": _FOLDER,
    "test_a_mount_that_hangs_does_not_outlast_the_grace": "a mount",
    "test_a_path_no_file_system_takes_is_told": "a path",
    "test_beats_go_on_while_the_main_thread_is_in_c": _FOLDER,
    "test_50_processes_create_one_study": _FOLDER,
    "test_in_one_process_the_cap_costs_one_name": _FOLDER,
    "test_on_a_real_folder": _FOLDER,
    "test_one_that_is_killed_half_way_is_said_again": _FOLDER,
    "test_one_that_moves_while_it_is_watched_is_left_alone": _FOLDER,
    "test_processes_that_fork_at_once_make_one_study": _FOLDER,
    "test_three_runs_with_two_workers_each_stay_under_a_cap_of_two": _FOLDER,
    "test_three_workers_one_killed": _FOLDER,
    "test_what_is_planted_in_place_of_a_log_is_not_written_through": _FOLDER,
    "test_a_child_of_a_process_whose_threads_are_at_work_looks_anew": _FORK,
    "test_a_forked_child_does_not_own_what_its_parent_took": _FORK,
    "test_a_forked_child_has_neither_handlers_nor_thread_nor_pipe": _FORK,
    "test_a_forked_child_may_search_by_itself": _FORK,
    "test_a_log_that_cannot_be_written_is_the_stores_trouble": _LOGS,
    "test_each_gets_its_share_of_the_cores": _LOGS,
    "test_folders_are_the_attempts_own": _LOGS,
    "test_one_that_takes_too_long_is_failed_with_the_limit_and_the_others_go_on": _LOGS,
    "test_seeds_hashes_and_locales_change_nothing": _LOGS,
    "test_an_outage_while_reporting_is_not_the_objectives": _RARE,
    "test_an_owner_learns_of_its_rescue_at_a_report": _RARE,
    "test_a_running_report_moves_the_record_and_rewrites_nothing": "stamps are whole seconds",
}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    kept = [
        item
        for item in items
        if "tmp_path" in getattr(item, "fixturenames", ()) and getattr(item, "originalname", item.name) not in NOT
    ]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept
