-- Any other number than before restarts it.
obj.spec.restartNonce = os.time()
return obj
