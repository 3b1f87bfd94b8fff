// Package clone reads the code of a repository at one ref, over Git's smart HTTP protocol and through the egress guard:
// one commit without its history, with limits that apply while it is received. It does not write repository files to
// disk under their own names and does not execute anything. It stores Git's pack in a directory that Close removes.
package clone
