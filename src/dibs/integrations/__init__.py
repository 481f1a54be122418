"""What joins dibs to other libraries. Each module is imported where it is used, and only there: nothing else of
dibs needs the library behind it. The public names are in the thin modules ``dibs.optuna`` and ``dibs.sklearn``.
"""
