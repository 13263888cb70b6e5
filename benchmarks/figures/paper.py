"""What the batching paper, and its authors elsewhere, say of the two figures, as far as a text of theirs was at hand.

At hand were the paper's abstract and the documentation of its implementation in TensorFlow Probability; the body of the
paper was not. So its curves are not repeated here: a number from memory would be none.
"""

PAPER = (
    "Radul, Patton, Maclaurin, Hoffman, Saurous, [Automatically Batching Control-Intensive Programs for Modern "
    "Accelerators](https://arxiv.org/abs/1910.11141), MLSys 2020"
)

NOT_AT_HAND = (
    "Of the paper only the abstract was at hand when this page was written, and the documentation that its authors "
    "wrote for their implementation. The numbers on its curve are therefore not repeated; compare the shapes."
)

THROUGHPUT = (
    "The paper's figure 6 gives the throughput of the batched No-U-Turn sampler on a Bayesian logistic regression, by "
    "the size of the batch, for its program-counter machine and its local one, beside Stan and a sampler that is not "
    "batched. Its abstract claims speedups of orders of magnitude, for *accelerators*: hardware on which a batch of "
    "many chains costs little more than a single one. Two cores of a CPU are no such thing. A few chains of this "
    "density keep them busy, so here batching can gain what the gradient of a single chain leaves idle, and what an "
    "interpreter costs between two gradients; no more."
)

UTILIZATION = (
    "The paper's figure 7 gives the utilisation of the gradient on a correlated Gaussian, by the size of the batch. Of "
    "why it falls, and what helps, its authors say in the [sampler's documentation]"
    "(https://www.tensorflow.org/probability/api_docs/python/tfp/experimental/mcmc/NoUTurnSampler) that to run several "
    "trajectories as one step lets the machine batch gradients across consecutive trajectories; in the [guide to the "
    "implementation](https://github.com/tensorflow/probability/blob/main/tensorflow_probability/python/internal/"
    "auto_batching/README.md), that it runs the earliest instruction at which a lane waits, so that what stands later "
    "in the source runs at higher utilisation. Both are seen here: all machines make {trajectories} trajectories in a "
    "row; the gradient stands last in the recursion. Local batching has calls on the host's stack, and so waits at the "
    "end of each trajectory for the longest."
)
