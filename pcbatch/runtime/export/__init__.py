"""Programs as StableHLO in a file: written where pcbatch compiles, run where JAX is all there is."""
