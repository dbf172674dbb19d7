instead("Reading the results…", "status");
start(servedSource(location.pathname)).catch((error) => instead(error.message, "alert"));
