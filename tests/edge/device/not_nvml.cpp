// A shared library without any function of a driver.
extern "C" int not_a_driver() { return 0; }
