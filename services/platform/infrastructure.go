package platform

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"

	"google.golang.org/protobuf/types/known/structpb"

	platformv1 "github.com/palisade/palisade/gen/palisade/platform/v1"
)

// scannerNode is an AWS CloudFormation template. It has no secret: these are in parameters and in AWS Secrets Manager.
//
//go:embed scanner_node.json
var scannerNode []byte

// template has the parts of a template.
type template struct {
	version, description                     string
	metadata, parameters, resources, outputs *structpb.Struct
}

// Infrastructure is the service group "infrastructure configurations".
type Infrastructure struct {
	platformv1.UnimplementedInfrastructureConfigurationsServiceServer
	node template
}

// NewInfrastructure reads the templates.
func NewInfrastructure() (*Infrastructure, error) {
	var parts struct {
		AWSTemplateFormatVersion, Description    string
		Metadata, Parameters, Resources, Outputs map[string]any
	}
	if err := json.Unmarshal(scannerNode, &parts); err != nil {
		return nil, fmt.Errorf("read the template of scanner nodes: %w", err)
	}
	var errs []error
	part := func(of map[string]any) *structpb.Struct {
		s, err := structpb.NewStruct(of)
		errs = append(errs, err)
		return s
	}
	s := &Infrastructure{node: template{
		version: parts.AWSTemplateFormatVersion, description: parts.Description, metadata: part(parts.Metadata),
		parameters: part(parts.Parameters), resources: part(parts.Resources), outputs: part(parts.Outputs),
	}}
	return s, errors.Join(errs...)
}

// GetBootstrapManagedScanVpcV2 returns a template that runs a scanner node in a VPC.
func (s *Infrastructure) GetBootstrapManagedScanVpcV2(
	context.Context, *platformv1.GetBootstrapManagedScanVpcV2Request,
) (*platformv1.GetBootstrapManagedScanVpcV2Response, error) {
	return &platformv1.GetBootstrapManagedScanVpcV2Response{
		AwsTemplateFormatVersion: s.node.version, Description: s.node.description, Metadata: s.node.metadata,
		Parameters: s.node.parameters, Resources: s.node.resources, Outputs: s.node.outputs,
	}, nil
}
