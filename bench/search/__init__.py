"""How good the samplers' points are: simulated studies with many workers, against Optuna and chance."""
