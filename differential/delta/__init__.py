"""Delta queries: joins of several collections that keep nothing but the collections' indexes.

The changes of Q = R1 ⋈ R2 ⋈ … ⋈ Rn are the sum, over i, of the changes of Ri joined with all the others as they were
then: the relations before Ri with the updates at the change's time, those after it without. So each combination of
changes is made exactly once: by its latest member and, among those at one time, by the last of them. (Ammar, McSherry,
Salihoglu and Joglekar, "Distributed Evaluation of Subgraph Queries Using Worst-case Optimal Low-Memory Dataflows", VLDB
2018.)

A change on its way through the other collections is a prefix; `Prefixes` are prefixes that know their initial times.
`half_join` matches them with a collection. `extend` adds a column by which several collections are joined at once, in
the manner of worst-case-optimal joins (Ngo, Porat, Ré and Rudra, PODS 2012): for each prefix the collection that has
the fewest values proposes them, and all the others validate them. So the work is that of the least, prefix by prefix.
A worker by itself does all of that in one operator (`differential.delta.extend_locally`).

Collections are multisets: a result occurs as often as the product of the occurrences of its parts.
"""

from differential.delta.collection_index import CollectionIndex, Extension, extend
from differential.delta.prefixes import AltNeu, Prefixes

__all__ = ["AltNeu", "CollectionIndex", "Extension", "Prefixes", "extend"]
