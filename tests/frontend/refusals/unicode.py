import pcbatch


@pcbatch.autobatch
def größe(ä, β):
	"""Tabs and letters of more than one byte: the carets must stand right."""
	if ä > 0:
		ö = "äöü"; ß = ä is β
	λ = ä + β;	print("日本語", λ)
	return ö
