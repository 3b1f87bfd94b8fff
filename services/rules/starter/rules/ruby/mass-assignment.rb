def values
  # ruleid: palisade.ruby.mass-assignment
  params.require(:user).permit!
  # ruleid: palisade.ruby.mass-assignment
  params.permit!
  # ok: palisade.ruby.mass-assignment
  params.require(:user).permit(:name, :email)
  # ok: palisade.ruby.mass-assignment
  params.permit(:page)
  # ok: palisade.ruby.mass-assignment
  params.require(:user).permit(roles: [])
end
