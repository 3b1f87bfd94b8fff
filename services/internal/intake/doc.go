// Package intake bounds the memory for what a node is receiving: the bytes of bodies and messages while they arrive,
// and what they become when they are decoded, on both ports and all connections together.
package intake
