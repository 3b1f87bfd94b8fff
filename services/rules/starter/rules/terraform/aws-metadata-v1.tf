resource "aws_instance" "web" {
  metadata_options {
    # ruleid: palisade.terraform.aws-metadata-v1
    http_tokens = "optional"
  }
}

resource "aws_instance" "guarded" {
  metadata_options {
    # ok: palisade.terraform.aws-metadata-v1
    http_tokens = "required"
  }
}

resource "aws_launch_template" "web" {
  metadata_options {
    # ok: palisade.terraform.aws-metadata-v1
    http_tokens = var.http_tokens
    # ok: palisade.terraform.aws-metadata-v1
    http_endpoint = "disabled"
  }
}
