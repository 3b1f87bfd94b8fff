class HooksController
  # ruleid: palisade.ruby.csrf-protection-off
  skip_before_action(:verify_authenticity_token, only: :create)
  # ok: palisade.ruby.csrf-protection-off
  skip_before_action(:authenticate, only: :create)
  # ok: palisade.ruby.csrf-protection-off
  protect_from_forgery(with: :exception)
end
