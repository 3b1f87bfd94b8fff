// Command palisade is the whole product in one binary: the server (serve), operator commands on the store (migrate,
// token, jwt, doctor), and commands that call the API (upload, findings).
//
// Exit status: 0 success, 1 reserved for a policy that blocks, 2 an error.
package main
