"""Implied volatility, a root by bisection for each option: the function that a loop over examples calls, batched.

Look at: the decorator is the only change. `implied_volatility.single` is the undecorated function, so the loop over
options below is what the batch replaces. Each option takes as many halvings as its own price needs.

Method: Black and Scholes, "The pricing of options and corporate liabilities", J. Political Economy 81 (1973), without
interest.
"""

import math

import numpy as np

import pcbatch


def call_price(spot, strike, years, volatility):
    """The price of a call."""
    width = volatility * math.sqrt(years)
    d = math.log(spot / strike) / width + width / 2.0
    return spot * normal(d) - strike * normal(d - width)


def normal(x):
    """The normal distribution function."""
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


@pcbatch.autobatch
def implied_volatility(paid, spot, strike, years):
    """The volatility at which a call is worth what was paid, and the number of halvings."""
    low, high = 0.001, 4.0
    for turn in range(60):
        middle = (low + high) / 2.0
        error = call_price(spot, strike, years, middle) - paid
        if abs(error) < 1e-6 * spot:
            return middle, turn
        if error > 0.0:
            high = middle
        else:
            low = middle
    return math.nan, 60


def options(number, seed=0):
    """Random calls whose volatility is known: what was paid, spot, strike, years; and the volatility."""
    random = np.random.default_rng(seed)
    spot, strike = random.uniform(80.0, 120.0, [2, number])
    years, volatility = random.uniform(0.1, 2.0, number), random.uniform(0.1, 0.8, number)
    paid = np.array([call_price(*each) for each in zip(spot, strike, years, volatility, strict=True)])
    return (paid, spot, strike, years), volatility


def main():
    """A thousand options, the first few of them printed."""
    batch, volatility = options(1000)
    found, turns = (np.asarray(each) for each in implied_volatility(*batch))
    print(f"{'paid':>8} {'spot':>8} {'strike':>8} {'years':>6} {'volatility':>11} {'halvings':>9}")
    for lane in range(5):
        print("{:8.3f} {:8.2f} {:8.2f} {:6.2f}".format(*(each[lane] for each in batch)), end="")
        print(f" {found[lane]:11.6f} {turns[lane]:9}")
    singly = implied_volatility.single(*(each[0] for each in batch))
    print(f"\nthe first one by plain Python: {float(singly[0]):.6f}, {int(singly[1])} halvings")
    clear = np.abs(found - volatility) < 1e-3
    print(f"{clear.mean():.1%} within 0.001 of the true volatility; {turns.min()} to {turns.max()} halvings")


if __name__ == "__main__":
    main()
