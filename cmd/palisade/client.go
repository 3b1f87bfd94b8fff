package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/services/config"
)

const (
	urlEnv        = config.EnvPrefix + "URL"
	tokenEnv      = config.EnvPrefix + "TOKEN"
	defaultServer = "http://127.0.0.1:8080"
)

// client calls the HTTP API of one server with one token.
type client struct {
	http  *http.Client
	base  *url.URL
	token string
	agent string
}

// clientFlags are the flags of all commands that call the API.
type clientFlags struct {
	server, token, deployment string
}

func (f *clientFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.server, "server", "", "`URL` of the server (env "+urlEnv+", default "+defaultServer+")")
	cmd.Flags().StringVar(&f.token, "token", "", "API token (env "+tokenEnv+"; prefer it, other users of the machine can read flags)")
	cmd.Flags().StringVar(&f.deployment, "deployment", "", "`slug` of the deployment; default: the deployment of the token")
}

// newClient resolves flags, environment variables and defaults, in this order, and rejects invalid settings before a
// request is sent.
func (f *clientFlags) newClient(std streams) (*client, error) {
	server, from := f.server, "--server"
	if server == "" {
		server, from = std.getenv(urlEnv), urlEnv
	}
	if server == "" {
		server = defaultServer
	}
	base, err := url.Parse(strings.TrimRight(server, "/"))
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, usagef("%s: got %q, want a URL such as %s", from, printable(server), defaultServer)
	}
	if base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		return nil, usagef("%s: want a URL without user, query and fragment", from)
	}
	token := f.token
	if token == "" {
		token = std.getenv(tokenEnv)
	}
	token = strings.TrimSpace(token)
	if token == "" {
		return nil, fmt.Errorf("no API token: set %s or give --token.\n"+
			"  The server printed one on its first start; create another one with: palisade token create --name NAME --scopes web-api", tokenEnv)
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, usagef("the token contains blanks or characters that no token has; is it quoted or cut correctly?")
	}
	if base.Scheme == "http" && !loopback(base.Hostname()) {
		_, _ = fmt.Fprintf(std.err, "palisade: warning: %s is plain HTTP: the token is sent over the network unencrypted\n", base.Redacted())
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	// The server refuses an upload before its body is sent.
	transport.ExpectContinueTimeout = 2 * time.Second
	return &client{
		http:  &http.Client{Transport: transport, CheckRedirect: refuseRedirect},
		base:  base,
		token: token,
		agent: "palisade-cli/" + config.BuildVersion().Version,
	}, nil
}

// refuseRedirect refuses redirects: a POST would become a GET, and the caller decides which server gets the token.
func refuseRedirect(next *http.Request, _ []*http.Request) error {
	return fmt.Errorf("the server answered with a redirect to %s://%s; if that is correct, use it as --server", next.URL.Scheme, next.URL.Host)
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (c *client) request(ctx context.Context, method string, query url.Values, body io.Reader, path ...string) (*http.Request, error) {
	target := c.base.JoinPath(path...)
	target.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, method, target.String(), body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", c.agent)
	return req, nil
}

// do sends a request and decodes the response into result. An error status becomes an [*apiError].
func (c *client) do(req *http.Request, result any) error {
	resp, err := c.http.Do(req)
	if err != nil {
		return c.unreachable(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return readAPIError(resp)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return c.unreachable(err)
	}
	if err := json.Unmarshal(body, result); err != nil {
		return fmt.Errorf("%s did not answer with the expected JSON (%w); is it a Palisade server of this version?", c.base, err)
	}
	return nil
}

// unreachable explains why there was no response, and what to do.
func (c *client) unreachable(err error) error {
	var dns *net.DNSError
	switch {
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted")
	case errors.Is(err, errConnectionRefused):
		return fmt.Errorf("nothing listens at %s.\n  Start the server with: palisade serve\n  or set another one with --server or %s", c.base, urlEnv)
	case errors.As(err, &dns):
		return fmt.Errorf("the host of %s is unknown (%s).\n  Check --server or %s", c.base, dns.Err, urlEnv)
	default:
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err // without the whole URL, which is long and known to the caller
		}
		return fmt.Errorf("no answer from %s: %w", c.base, err)
	}
}

// resolveDeployment returns the given slug, or asks the server: a token belongs to exactly one deployment.
func (c *client) resolveDeployment(ctx context.Context, given string) (string, error) {
	if given != "" {
		return given, nil
	}
	req, err := c.request(ctx, http.MethodGet, nil, nil, "api", "v1", "deployments")
	if err != nil {
		return "", err
	}
	var answer struct {
		Deployments []struct{ Slug string }
	}
	if err := c.do(req, &answer); err != nil {
		var refused *apiError
		if errors.As(err, &refused) && refused.Code == codeScopeMissing {
			return "", fmt.Errorf("a token without the scope web-api cannot look up its deployment: name it with --deployment.\n  %w", err)
		}
		return "", err
	}
	var slugs []string
	for _, d := range answer.Deployments {
		slugs = append(slugs, d.Slug)
	}
	switch len(slugs) {
	case 0:
		return "", errors.New("this token has access to no deployment; it may lack the scope web-api")
	case 1:
		return slugs[0], nil
	default:
		return "", usagef("this token sees several deployments; choose one with --deployment: %s", printable(strings.Join(slugs, ", ")))
	}
}

// waitReady polls the server until it is ready or the time is over.
func (c *client) waitReady(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		req, err := c.request(ctx, http.MethodGet, nil, nil, "readyz")
		if err != nil {
			return err
		}
		req.Header.Del("Authorization")
		resp, err := c.http.Do(req)
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return errors.New("interrupted")
			}
			return fmt.Errorf("%s was not ready after %v", c.base, timeout)
		}
	}
}

// decode reads a response. Fields that a later server added are ignored.
func decode(raw []byte, into proto.Message) error {
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(raw, into); err != nil {
		return fmt.Errorf("unexpected response: %w", err)
	}
	return nil
}
