def report
  # ruleid: palisade.ruby.path-traversal
  send_file("/srv/reports/#{params[:name]}")
  # ruleid: palisade.ruby.path-traversal
  File.read("/srv/reports/" + params[:name])
  # ok: palisade.ruby.path-traversal
  send_file("/srv/reports/" + File.basename(params[:name]))
  # ok: palisade.ruby.path-traversal
  send_file(Report.find(params[:id]).path)
  # ok: palisade.ruby.path-traversal
  send_file("/srv/reports/index.html")
end
