// Dex runs the OpenID Connect provider of that name on this machine, for tests of signing in. It keeps everything in
// memory. Every user has the same password; see the flags.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/dexidp/dex/server"
	"github.com/dexidp/dex/server/connectors"
	"github.com/dexidp/dex/server/signer"
	"github.com/dexidp/dex/storage"
	"github.com/dexidp/dex/storage/memory"
	"github.com/dexidp/dex/web"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "dex:", err)
		os.Exit(1)
	}
}

func run() error {
	address := flag.String("listen", "127.0.0.1:0", "address to listen on; the issuer is http://ADDRESS/dex, printed on standard output")
	client := flag.String("client", "palisade-console", "id of the client; its secret is in the environment variable CLIENT_SECRET, and empty for a public client")
	redirect := flag.String("redirect", "", "redirect URI of the client")
	users := flag.String("users", "", "users as address:group:group, separated by commas; an address that begins with ! is not verified; the password is in the environment variable PASSWORD")
	flag.Parse()
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		return err
	}
	issuer := "http://" + listener.Addr().String() + "/dex"
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	kept := memory.New(log)
	list, err := passwords(*users, os.Getenv("PASSWORD"))
	if err != nil {
		return err
	}
	secret := os.Getenv("CLIENT_SECRET")
	kept = storage.WithStaticClients(kept, []storage.Client{{ID: *client, Secret: secret, Public: secret == "", Name: "Palisade", RedirectURIs: []string{*redirect}}})
	kept = storage.WithStaticPasswords(kept, list, log)
	kept = storage.WithStaticConnectors(kept, []storage.Connector{{ID: connectors.LocalConnector, Type: connectors.LocalConnector, Name: "E-mail"}})
	ctx := context.Background()
	keys, err := (&signer.LocalConfig{KeysRotationPeriod: "6h"}).Open(ctx, kept, time.Hour, time.Now, log)
	if err != nil {
		return err
	}
	provider, err := server.NewServer(ctx, server.Config{
		Issuer: issuer, Storage: kept, SkipApprovalScreen: true, IDTokensValidFor: time.Hour, Logger: log, Signer: keys,
		Web: server.WebConfig{WebFS: web.FS()},
	})
	if err != nil {
		return err
	}
	fmt.Println(issuer)
	return (&http.Server{Handler: provider, ReadHeaderTimeout: 10 * time.Second}).Serve(listener)
}

// passwords reads the flag users.
func passwords(text, password string) (list []storage.Password, err error) {
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.DefaultCost)
	for entry := range strings.SplitSeq(text, ",") {
		parts := strings.Split(entry, ":")
		email, unverified := strings.CutPrefix(parts[0], "!")
		verified := !unverified
		list = append(list, storage.Password{Email: email, EmailVerified: &verified, Hash: hash, Username: email, UserID: "subject of " + email, Groups: parts[1:]})
	}
	return list, err
}
