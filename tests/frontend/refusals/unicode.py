import pcbatch


@pcbatch.autobatch
def größe(ä, β):
	"""Tabs and letters of more than one byte: the carets must stand right."""
	if ä > 0:
		ö = "äöü"; global ß
	λ = ä + β;	yield ("日本語", λ)
	return ö
