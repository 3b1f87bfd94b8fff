package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
)

// deploymentClient calls the API of one deployment.
type deploymentClient struct {
	*client
	deploymentID string
}

func openDeployment(ctx context.Context, flags clientFlags, std streams) (*deploymentClient, error) {
	c, err := flags.newClient(std)
	if err != nil {
		return nil, err
	}
	id, err := c.deploymentID(ctx, flags.deployment)
	return &deploymentClient{client: c, deploymentID: id}, err
}

// deploymentID looks up the id of a deployment, which most of the API needs. The slug "" means the token's own
// deployment.
func (c *client) deploymentID(ctx context.Context, slug string) (string, error) {
	slug, err := c.resolveDeployment(ctx, slug)
	if err != nil {
		return "", err
	}
	req, err := c.request(ctx, http.MethodGet, nil, nil, "api", "v1", "deployments")
	if err != nil {
		return "", err
	}
	var answer struct {
		Deployments []struct {
			ID   int64
			Slug string
		}
	}
	if err := c.do(req, &answer); err != nil {
		return "", err
	}
	for _, d := range answer.Deployments {
		if d.Slug == slug {
			return strconv.FormatInt(d.ID, 10), nil
		}
	}
	return "", fmt.Errorf("this token has no access to a deployment %q", slug)
}

// send sends a request to an API group such as "api/rules/v1"; body may be nil.
func (d *deploymentClient) send(ctx context.Context, method, api string, query url.Values, body any, path ...string) (raw json.RawMessage, err error) {
	var content io.Reader
	if body != nil {
		var encoded bytes.Buffer
		encoder := json.NewEncoder(&encoded)
		encoder.SetEscapeHTML(false) // patterns of rules are full of characters that escaping would make longer
		if err := encoder.Encode(body); err != nil {
			return nil, err
		}
		content = bytes.NewReader(bytes.TrimSuffix(encoded.Bytes(), []byte("\n")))
	}
	at := []string{api, "deployments", d.deploymentID}
	for _, part := range path {
		at = append(at, url.PathEscape(part))
	}
	req, err := d.request(ctx, method, query, content, at...)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	err = d.do(req, &raw)
	return raw, err
}

// ask is send, and decodes the response into result.
func (d *deploymentClient) ask(ctx context.Context, method, api string, query url.Values, body, result any, path ...string) (json.RawMessage, error) {
	raw, err := d.send(ctx, method, api, query, body, path...)
	if err != nil {
		return nil, err
	}
	return raw, json.Unmarshal(raw, result)
}
