resource "aws_security_group" "web" {
  ingress {
    # ruleid: palisade.terraform.aws-open-admin-port
    from_port   = 22
    to_port     = 22
    protocol    = "tcp"
    cidr_blocks = ["0.0.0.0/0"]
  }
  ingress {
    # ok: palisade.terraform.aws-open-admin-port
    from_port   = 443
    to_port     = 443
    protocol    = "tcp"
    cidr_blocks = ["0.0.0.0/0"]
  }
  ingress {
    # ok: palisade.terraform.aws-open-admin-port
    from_port   = 22
    to_port     = 22
    protocol    = "tcp"
    cidr_blocks = ["10.0.0.0/8"]
  }
  egress {
    # ok: palisade.terraform.aws-open-admin-port
    from_port   = 22
    to_port     = 22
    protocol    = "tcp"
    cidr_blocks = ["0.0.0.0/0"]
  }
}

resource "aws_security_group" "ranges" {
  ingress {
    # ruleid: palisade.terraform.aws-open-admin-port
    from_port   = 0
    to_port     = 65535
    protocol    = "tcp"
    cidr_blocks = ["0.0.0.0/0"]
  }
  ingress {
    # ruleid: palisade.terraform.aws-open-admin-port
    from_port   = 20
    to_port     = 25
    protocol    = "tcp"
    cidr_blocks = ["10.0.0.0/8", "0.0.0.0/0"]
  }
  ingress {
    from_port = 0
    to_port   = 0
    # ruleid: palisade.terraform.aws-open-admin-port
    protocol    = "-1"
    cidr_blocks = ["0.0.0.0/0"]
  }
  ingress {
    # ok: palisade.terraform.aws-open-admin-port
    from_port   = 8000
    to_port     = 8999
    protocol    = "tcp"
    cidr_blocks = ["0.0.0.0/0"]
  }
  ingress {
    # ok: palisade.terraform.aws-open-admin-port
    from_port   = 20
    to_port     = 21
    protocol    = "tcp"
    cidr_blocks = ["0.0.0.0/0"]
  }
}

resource "aws_security_group_rule" "desktop" {
  type = "ingress"
  # ruleid: palisade.terraform.aws-open-admin-port
  from_port   = 3000
  to_port     = 4000
  protocol    = "tcp"
  cidr_blocks = ["0.0.0.0/0"]
}

resource "aws_vpc_security_group_ingress_rule" "shell" {
  # ruleid: palisade.terraform.aws-open-admin-port
  from_port   = 22
  to_port     = 22
  ip_protocol = "tcp"
  cidr_ipv4   = "0.0.0.0/0"
}
