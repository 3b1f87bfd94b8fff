package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	policiesv1 "github.com/palisade/palisade/gen/palisade/policies/v1"
)

// errChanges ends a command that found changes with the exit status 3.
var errChanges = errors.New("there are changes")

const (
	// maxPolicyFile is the maximum size of a file of policies in bytes.
	maxPolicyFile = 8 << 20

	remediationSection = "remediation"
)

// policySection is a part of a file of policies, and its path in the API.
type policySection struct{ name, path string }

// policySections are the parts of a file of policies, with their paths in the API.
var policySections = []policySection{
	{"code", "detection-policy/code"}, {"secrets", "detection-policy/secrets"}, {"supply-chain", "detection-policy/supply-chain"},
	{remediationSection, "remediation-policies"},
}

// policyFile is a file of policies. Sections that it does not have are left alone.
type policyFile struct {
	// Versions are the states that the sections were pulled from.
	Versions map[string]string `json:"versions,omitempty" yaml:"versions,omitempty"`
	// Policies are bundles by section.
	Policies map[string]json.RawMessage `json:"policies"`
}

func newPolicy(std streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Keep the policies of a deployment in a file",
		Long: `One file has the detection policies (code, secrets, supply-chain) and the remediation policies, as YAML or JSON. Pull
writes it, diff compares it with the server, apply makes the server equal to it. Sections that the file does not have
are left alone. See docs/policies.md.`,
		Example: `  palisade policy pull policies.yaml
  palisade policy diff policies.yaml        # exit status 3: there are changes
  palisade policy apply policies.yaml`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newPolicyPull(std), newPolicyDiff(std), newPolicyApply(std), newPolicyBackTest(std))
	return cmd
}

func policyFileArg(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usagef("want one file, or - for the standard stream, got %d arguments", len(args))
	}
	return nil
}

func newPolicyPull(std streams) *cobra.Command {
	var flags clientFlags
	var noVersions, partial bool
	cmd := &cobra.Command{
		Use:   "pull FILE",
		Short: "Write the policies of the server to a file",
		Long: `Write the policies of the server to a file; - is the standard output. A name that ends in .json makes it JSON. With the
versions in the file, apply refuses to overwrite what others changed after the pull. Leave them out in a repository.

A token that does not see all projects reads only a part of the policies. Such a file is written with --partial only; it
is marked, and cannot be applied.`,
		Args: policyFileArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := openDeployment(cmd.Context(), flags, std)
			if err != nil {
				return err
			}
			file, err := pullPolicies(cmd.Context(), d)
			if err != nil {
				return err
			}
			if file.partial() && !partial {
				return errors.New("the token does not see all projects, so the file would lack what the policies say about others: " +
					"use the token of an administrator, or --partial for a file that cannot be applied")
			}
			if noVersions {
				file.Versions = nil
			}
			text, err := file.encode(strings.HasSuffix(args[0], ".json"))
			if err != nil {
				return err
			}
			if args[0] == "-" {
				_, err = std.out.Write(text)
				return err
			}
			return os.WriteFile(args[0], text, 0o644) //nolint:gosec // policies are no secrets, and belong to a repository
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&noVersions, "no-versions", false, "leave out the versions")
	cmd.Flags().BoolVar(&partial, "partial", false, "also write what a token reads that does not see all projects")
	return cmd
}

// pullPolicies reads all sections.
func pullPolicies(ctx context.Context, d *deploymentClient) (*policyFile, error) {
	file := &policyFile{Versions: map[string]string{}, Policies: map[string]json.RawMessage{}}
	for _, section := range policySections {
		var answer struct {
			Bundle  map[string]json.RawMessage `json:"bundle"`
			Version string                     `json:"state_version"`
		}
		if err := policyCall(ctx, d, http.MethodGet, section.path, "", nil, &answer); err != nil {
			return nil, err
		}
		delete(answer.Bundle, "deployment_slug") // so that the file fits any deployment
		delete(answer.Bundle, "product")
		bundle, err := json.Marshal(answer.Bundle)
		if err != nil {
			return nil, err
		}
		file.Versions[section.name], file.Policies[section.name] = answer.Version, bundle
	}
	return file, nil
}

// partial reports whether a section lacks what the token that pulled it does not see.
func (f *policyFile) partial() bool {
	for _, bundle := range f.Policies {
		var mark struct{ Partial bool }
		if json.Unmarshal(bundle, &mark) == nil && mark.Partial {
			return true
		}
	}
	return false
}

// policyCall sends a request about one section.
func policyCall(ctx context.Context, d *deploymentClient, method, path, ifMatch string, bundle json.RawMessage, result any) error {
	var body []byte
	if bundle != nil {
		body = append(append([]byte(`{"bundle":`), bundle...), '}')
	}
	req, err := d.request(ctx, method, nil, bytes.NewReader(body), "api/policies/v2/deployments", url.PathEscape(d.deploymentID), path)
	if err != nil {
		return err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if ifMatch != "" {
		req.Header.Set("If-Match", ifMatch)
	}
	return d.do(req, result)
}

// encode writes the file.
func (f *policyFile) encode(asJSON bool) ([]byte, error) {
	text, err := json.MarshalIndent(f, "", "  ")
	if err != nil || asJSON {
		return append(text, '\n'), err
	}
	var plain any
	if err := json.Unmarshal(text, &plain); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(plain); err != nil {
		return nil, err
	}
	return out.Bytes(), encoder.Close()
}

// decodePolicies reads a file. JSON is YAML. The YAML library refuses documents that grow through aliases.
func decodePolicies(source []byte) (*policyFile, error) {
	if len(source) > maxPolicyFile {
		return nil, fmt.Errorf("the file has more than %d bytes", maxPolicyFile)
	}
	var plain map[string]any
	document := yaml.NewDecoder(bytes.NewReader(source))
	if err := document.Decode(&plain); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("the file is neither YAML nor JSON: %w", err)
	}
	if err := document.Decode(new(any)); !errors.Is(err, io.EOF) {
		return nil, errors.New("the file has more than one document")
	}
	text, err := json.Marshal(plain)
	if err != nil {
		return nil, fmt.Errorf("the file has a value that JSON does not have: %w", err)
	}
	if len(text) > maxPolicyFile {
		return nil, fmt.Errorf("the file has more than %d bytes without aliases", maxPolicyFile)
	}
	file := &policyFile{}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(file); err != nil {
		return nil, fmt.Errorf("the file has the keys policies and versions: %w", err)
	}
	if len(file.Policies) == 0 {
		return nil, errors.New("the file has no policies")
	}
	return file, file.check()
}

// check requires known sections and keys: a misspelled condition would make a policy broader.
func (f *policyFile) check() error {
	for _, name := range slices.Sorted(maps.Keys(f.Policies)) {
		if !isPolicySection(name) {
			return fmt.Errorf("there is no section %q: there are code, secrets, supply-chain and remediation", name)
		}
		var bundle proto.Message = &policiesv1.DetectionPolicyBundle{}
		if name == remediationSection {
			bundle = &policiesv1.RemediationPoliciesBundle{}
		}
		if err := protojson.Unmarshal(f.Policies[name], bundle); err != nil {
			return fmt.Errorf("section %s: %w", name, err)
		}
	}
	for name := range f.Versions {
		if !isPolicySection(name) {
			return fmt.Errorf("versions: there is no section %q: there are code, secrets, supply-chain and remediation", name)
		}
	}
	return nil
}

func isPolicySection(name string) bool {
	return slices.ContainsFunc(policySections, func(section policySection) bool { return section.name == name })
}
