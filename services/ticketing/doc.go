// Package ticketing is the service group "external ticketing": a deployment's issue trackers, and the tickets in them
// that are linked to findings.
//
// A ticket is created in three steps, so that a lost answer makes no second one: a row with a random marker and the
// links of its findings, the call to the tracker, and the key that the tracker gave it. A ticket whose call ended
// without an answer is looked for by its marker when somebody asks for it again.
package ticketing
