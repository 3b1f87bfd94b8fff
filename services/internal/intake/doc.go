// Package intake limits the memory for requests in progress: the bytes of bodies and messages while they arrive, and
// their decoded form. The limit covers both ports and all connections together.
package intake
