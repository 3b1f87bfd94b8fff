// Package reply lets a handler answer with a message that is encoded already, in memory that is used again: making room for
// a page of a list, and collecting it afterwards, costs about as much as filling it.
package reply
