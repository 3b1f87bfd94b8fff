package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/palisade/palisade/services/config"
)

const (
	webhookSecretEnv = config.EnvPrefix + "WEBHOOK_SECRET"
	// listenGrace is the time for pending responses at shutdown.
	listenGrace = 5 * time.Second
)

type listenOptions struct {
	address string
	secret  string
	fail    float64
	count   int
	output  string
}

func newListen(std streams) *cobra.Command {
	var o listenOptions
	cmd := &cobra.Command{
		Use:   "listen",
		Short: "Receive webhooks, check their signatures and print them",
		Long: `Receive the webhooks of a notification rule, check their signatures against the secret, and print a line
for each event, until Ctrl-C. It shows what your own receiver will get.

Two signatures are checked over the raw body: X-Semgrep-Signature-256 (hex HMAC-SHA256), and
webhook-signature of Standard Webhooks (its secret is "whsec_" and the base64 of the same text).
A message with a missing or wrong signature is answered with 401 and the reason. A message with a
known id is marked as a duplicate: deliveries are retried until they succeed.

Palisade does not call private addresses unless the operator allows them with --egress-allow.`,
		Example: `  # A server that may call the receiver, and the receiver
  palisade serve --egress-allow 127.0.0.1:8099
  export PALISADE_WEBHOOK_SECRET=$(openssl rand -hex 16)
  palisade listen

  # A rule that sends to it, and a test message (in a third shell; 1 is the deployment's id)
  curl -H "Authorization: Bearer $PALISADE_TOKEN" http://127.0.0.1:8080/api/agent/deployments/1/actions -d '{
    "notificationRule": {"name": "try", "channel": "CHANNEL_WEBHOOK", "is_enabled": true,
      "config": {"url": "http://127.0.0.1:8099/", "secret": "'$PALISADE_WEBHOOK_SECRET'"}}}'
  curl -X POST -H "Authorization: Bearer $PALISADE_TOKEN" http://127.0.0.1:8080/api/agent/deployments/1/actions/1/test

  # Fail half of the messages to see retries; end after ten distinct messages; one JSON object per line
  palisade listen --fail 0.5 --count 10 -o json | jq .rule`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), std) },
	}
	cmd.Flags().StringVar(&o.address, "addr", "127.0.0.1:8099", "address to listen on; port 0 picks a free port")
	cmd.Flags().StringVar(&o.secret, "secret", "", "signing secret (env "+webhookSecretEnv+"; prefer it, other users of the machine can read flags); without it, signatures are not checked")
	cmd.Flags().Float64Var(&o.fail, "fail", 0, "fraction of messages to answer with 500, from 0 to 1")
	cmd.Flags().IntVar(&o.count, "count", 0, "end after this number of distinct ids; 0: never")
	cmd.Flags().StringVarP(&o.output, "output", "o", "text", "text or json (one object per line)")
	return cmd
}

func (o *listenOptions) run(ctx context.Context, std streams) error {
	if err := oneOf("output", o.output, "text", "json"); err != nil {
		return err
	}
	if !(o.fail >= 0 && o.fail <= 1) { // also rejects NaN
		return usagef("--fail: got %v, want a share from 0 to 1", o.fail)
	}
	if o.count < 0 {
		return usagef("--count: got %d, want 0 or more", o.count)
	}
	if o.secret == "" {
		o.secret = std.getenv(webhookSecretEnv)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.address)
	if err != nil {
		return usagef("--addr: %w", err)
	}
	r := newWebhookReceiver(*o, std)
	_, _ = fmt.Fprintf(std.err, "Listening on http://%s/; Ctrl-C ends.\n", listener.Addr())
	if o.secret == "" {
		_, _ = fmt.Fprintf(std.err, "No secret (--secret or %s): signatures are not checked.\n", webhookSecretEnv)
	}
	if err := r.serve(ctx, listener); err != nil {
		return err
	}
	return r.tally.print(std.err)
}

// serve answers requests until ctx ends or enough messages have arrived. Pending responses are then completed.
func (r *webhookReceiver) serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler: r, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, WriteTimeout: time.Minute, MaxHeaderBytes: 64 << 10,
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	case <-r.enough:
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), listenGrace)
	defer cancel()
	if err := server.Shutdown(ending); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}
