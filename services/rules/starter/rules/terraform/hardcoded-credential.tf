resource "aws_db_instance" "shop" {
  username = "shop"
  # ruleid: palisade.terraform.hardcoded-credential
  password = "k9Lw-battery-72"
}

resource "aws_db_instance" "variable" {
  username = "shop"
  # ok: palisade.terraform.hardcoded-credential
  password = var.database_password
}

resource "aws_db_instance" "placeholder" {
  username = "shop"
  # ok: palisade.terraform.hardcoded-credential
  password = "changeme-123"
}

provider "acme" {
  # ruleid: palisade.terraform.hardcoded-credential
  secret_key = "9f8Qz1mWc0Rt"
  # ok: palisade.terraform.hardcoded-credential
  secret_key_file = "/run/secrets/acme"
}
