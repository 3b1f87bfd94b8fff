package identity

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

// Server is a running Palisade, called over HTTP.
type Server struct {
	// Base is its URL without a trailing slash.
	Base, Token, Deployment string
	HTTP                    *http.Client
}

// call sends a request and decodes the response into into, unless that is nil. Any status other than 200 is an error.
func (s *Server) call(ctx context.Context, method, path string, body []byte, into any) error {
	request, err := http.NewRequestWithContext(ctx, method, s.Base+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+s.Token)
	response, err := s.HTTP.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s: %.2000s", method, path, response.Status, content)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(content, into)
}

func (s *Server) deployment() string { return "/api/v1/deployments/" + url.PathEscape(s.Deployment) }

// HoldNothing makes the server close findings however many there are: edits delete a lot of code on purpose.
func (s *Server) HoldNothing(ctx context.Context) error {
	return s.call(ctx, http.MethodPatch, s.deployment()+"/close-limits", []byte(`{"limits":{"off":true}}`), nil)
}

// Upload uploads a SARIF report of the main branch.
func (s *Server) Upload(ctx context.Context, project string, report *Report) error {
	content, err := report.SARIF()
	if err != nil {
		return err
	}
	query := url.Values{"project": {project}, "ref": {"main"}}
	return s.call(ctx, http.MethodPost, s.deployment()+"/reports?"+query.Encode(), content, nil)
}

// List returns all findings of a project, except removed ones.
func (s *Server) List(ctx context.Context, project string) ([]Finding, error) {
	const size = 3000
	var list []Finding
	for page := 0; ; page++ {
		query := url.Values{"repos": {project}, "page_size": {strconv.Itoa(size)}, "page": {strconv.Itoa(page)}}
		var answer struct {
			Findings []struct {
				ID       int64
				Status   string
				Message  string  `json:"rule_message"`
				Note     *string `json:"triage_comment"`
				Rule     struct{ Name string }
				Location struct {
					File   string `json:"file_path"`
					Line   int
					Column int
				}
			}
		}
		if err := s.call(ctx, http.MethodGet, s.deployment()+"/findings?"+query.Encode(), nil, &answer); err != nil {
			return nil, err
		}
		for _, f := range answer.Findings {
			finding := Finding{
				ID: f.ID, Rule: f.Rule.Name, Place: Place{f.Location.File, f.Location.Line}, Column: f.Location.Column, Message: f.Message, Status: f.Status,
			}
			if f.Note != nil {
				finding.Note = *f.Note
			}
			list = append(list, finding)
		}
		if len(answer.Findings) < size {
			return list, nil
		}
	}
}

// Decide triages a finding.
func (s *Server) Decide(ctx context.Context, finding int64, d Decision) error {
	body, err := json.Marshal(object{"issue_type": "sast", "issue_ids": []int64{finding}, "new_triage_state": d.Status, "new_note": d.Note})
	if err != nil {
		return err
	}
	var answer struct {
		Triaged int `json:"num_triaged"`
	}
	if err := s.call(ctx, http.MethodPost, s.deployment()+"/triage", body, &answer); err != nil {
		return err
	}
	if answer.Triaged != 1 {
		return fmt.Errorf("decision on finding %d: %d were triaged", finding, answer.Triaged)
	}
	return nil
}
