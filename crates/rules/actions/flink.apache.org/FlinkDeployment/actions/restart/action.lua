-- Any change of the number restarts it.
obj.spec.restartNonce = os.time()
return obj
