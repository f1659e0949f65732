"""Typed settings from environment variables, and from a YAML file for those that are a tree.

A settings class is a frozen dataclass whose fields are made by `setting`, or by `section` for a settings class of its
own. Every setting has a key, its path through the sections (`queue.core.partitions`), and a variable made of it
(`SWITCHYARD_QUEUE_CORE_PARTITIONS`). `load` reads all of them in one go, and reports everything that is wrong at once;
a variable or a key nobody knows is an error that suggests the right one.
"""

from queuecore.config.describing import SettingInfo, describe
from queuecore.config.fields import PREFIX, section, setting
from queuecore.config.loading import FILE_VARIABLE, load

__all__ = ["FILE_VARIABLE", "PREFIX", "SettingInfo", "describe", "load", "section", "setting"]
