// Package vex applies the statements of VEX documents to the findings of a project: which vulnerabilities of which
// packages do not affect it, and why.
//
// A statement is a decision of automation. It never changes what a person decided, or suppressed in the code. It may
// change what an older statement decided. Each change is an event with the author and the document, so it is known who
// decided what (see owners).
package vex

// Actor is the kind of the actor in the events of decisions by statements. Its id is the id of the scan.
const Actor = "vex"
