"""How fast networks over trees and sentences are trained: pcbatch beside DyNet, JAX and gradients made by hand."""
