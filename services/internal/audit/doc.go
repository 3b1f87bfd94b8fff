// Package audit writes the audit trail: who changed what. An entry is the last statement of the transaction that
// makes the change, and extends the hash chain of its deployment. Each entry has a keyed hash of itself and of the
// previous entry, so that Verify detects edited and removed entries. The chain's head is sealed together with its
// Origin, so that an emptied trail does not look like a new one. docs/decisions/0010-audit-trail.md lists what the
// chain cannot detect.
package audit
