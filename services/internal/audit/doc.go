// Package audit keeps the trail of who changed what. An entry is written in the transaction that makes the change, as
// its last step, and continues the chain of its deployment: each entry holds a keyed hash of itself and of the one
// before, so that an entry that is edited or removed is found (see Verify). The head of each chain is sealed, and with
// it since when there is a chain (see Origin), so that an emptied trail is not taken for a new one. What that cannot
// show is in docs/decisions/0010-audit-trail.md.
package audit
