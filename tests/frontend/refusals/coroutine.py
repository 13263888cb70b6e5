import pcbatch


@pcbatch.autobatch
async def f(x):
    async for y in x:
        x = y
    async with x:
        await x
    return [y async for y in x]
