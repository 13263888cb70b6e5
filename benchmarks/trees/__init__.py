"""Networks over trees and sentences: pcbatch beside DyNet and beside batches made by hand."""
