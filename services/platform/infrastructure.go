package platform

import (
	"context"
	_ "embed"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"

	platformv1 "github.com/palisade/palisade/gen/palisade/platform/v1"
)

// scannerNode is an AWS CloudFormation template. It has no secret: these are in parameters and in AWS Secrets Manager.
//
//go:embed scanner_node.json
var scannerNode []byte

// Infrastructure is the service group "infrastructure configurations".
type Infrastructure struct {
	platformv1.UnimplementedInfrastructureConfigurationsServiceServer
	template *platformv1.GetBootstrapManagedScanVpcV2Response
}

// NewInfrastructure reads the templates.
func NewInfrastructure() (*Infrastructure, error) {
	s := &Infrastructure{template: &platformv1.GetBootstrapManagedScanVpcV2Response{}}
	if err := protojson.Unmarshal(scannerNode, s.template); err != nil {
		return nil, fmt.Errorf("read the template of scanner nodes: %w", err)
	}
	return s, nil
}

// GetBootstrapManagedScanVpcV2 returns a template that runs a scanner node in a VPC.
func (s *Infrastructure) GetBootstrapManagedScanVpcV2(
	context.Context, *platformv1.GetBootstrapManagedScanVpcV2Request,
) (*platformv1.GetBootstrapManagedScanVpcV2Response, error) {
	return s.template, nil
}
