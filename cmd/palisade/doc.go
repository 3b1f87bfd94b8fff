// Command palisade is the whole product in one binary: the server (serve), what an operator does on its store (migrate,
// token, jwt, doctor) and what a pipeline or a person does through its API (upload, findings).
//
// Exit status: 0 all well, 1 reserved for a policy that blocks, 2 an error.
package main
