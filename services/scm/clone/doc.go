// Package clone reads the code of a repository at one ref, over Git's smart HTTP protocol and through the guard of
// outbound calls: one commit without its history, within limits that hold while it is received. It writes no file of
// the repository to disk under its own name and runs nothing; what it keeps is Git's pack, in a directory that Close
// removes.
package clone
