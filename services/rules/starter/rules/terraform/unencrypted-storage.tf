resource "aws_db_instance" "shop" {
  # ruleid: palisade.terraform.unencrypted-storage
  storage_encrypted = false
}

resource "aws_ebs_volume" "data" {
  # ruleid: palisade.terraform.unencrypted-storage
  encrypted = false
}

resource "aws_db_instance" "encrypted" {
  # ok: palisade.terraform.unencrypted-storage
  storage_encrypted = true
}

resource "aws_ebs_volume" "encrypted" {
  # ok: palisade.terraform.unencrypted-storage
  encrypted = var.encrypted
  # ok: palisade.terraform.unencrypted-storage
  multi_az = false
}
