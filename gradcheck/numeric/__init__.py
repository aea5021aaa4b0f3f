"""The differences: a derivative with an error bar, from nothing but evaluations of the function nearby.

Along a line through the point a computed output is F(t) + e(t): F smooth on each side of 0, |e| at most η. From that:

1. η is known from the tape (first-order rounding error by adjoints: Linnainmaa 1976, Christianson 1992), or measured
   by high differences of a few close values (ECNoise: Moré and Wild 2011). Whether structure finer than 2^-15 of the
   inputs' scale is rounding or the function's own, values alone cannot tell: η is had under either reading. Stairs
   that float32 shows to be rounding are so under both.
2. At step h the difference D(h), extrapolated once (Richardson 1911), lies within η / h of the derivative, but for a
   bias that shrinks with h.
3. The largest step that agrees with every smaller one is taken, from the smallest up (Lepski 1991); its bar is twice
   its noise and half of the change to the next step. Truncation, a kink or a jump nearby, a pole, the edge of the
   domain, overflow and the wrong scale are all "no longer agrees here".
4. The same is done on the left and on the right, with points strictly beside 0. Where the two sides are disjoint there
   is a kink, where the function leaps between them a jump: the derivative is then anything in their hull.

`line` evaluates the function at steps of all sizes, `noise` measures η under both readings,
`derivative` holds steps 2 to 4, `jacobian` finds entries.
"""
